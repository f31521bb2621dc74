package httpmw_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/fence"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/httpmw/internal/mwtest"
)

func TestTheFenceTravelsInAHeader(t *testing.T) {
	t.Parallel()
	got := make(chan uint64, 2)
	resource := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f, err := httpmw.Fence(r.Header)
		if err != nil {
			http.Error(w, "", http.StatusBadRequest)
			return
		}
		got <- f
	}))
	defer resource.Close()
	send := func(ctx context.Context) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodPut, resource.URL, http.NoBody)
		if err != nil {
			return err
		}
		req.Header.Set(httpmw.FenceHeader, "1") // copied from a request that came in, say
		if err := httpmw.SetFence(ctx, "order:42", req.Header); err != nil {
			return errors.Join(err, missing(req.Header))
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return errors.New(resp.Status)
		}
		return nil
	}
	defer http.DefaultClient.CloseIdleConnections()
	err := mwtest.MemoryLocker(t).Do(t.Context(), "order:42", func(ctx context.Context) error {
		if err := send(ctx); err != nil {
			return err
		}
		if want, _ := core.FenceFor(ctx, "order:42"); want == 0 || <-got != want {
			t.Errorf("it is not the fence of the lease, %d", want)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := send(t.Context()); !errors.Is(err, fence.ErrInvalid) || len(got) != 0 || strings.Contains(err.Error(), "left") {
		t.Errorf("without a lease: %v", err)
	}
	if err := httpmw.SetFence(t.Context(), "order:42", nil); !errors.Is(err, fence.ErrInvalid) {
		t.Errorf("nil headers: %v", err)
	}
}

func missing(h http.Header) error {
	if h.Get(httpmw.FenceHeader) != "" {
		return errors.New("the old fence was left")
	}
	return nil
}

func TestAHeaderThatIsNoFenceIsInvalid(t *testing.T) {
	t.Parallel()
	for what, values := range map[string][]string{
		"none":      nil,
		"empty":     {""},
		"two":       {"1", "1"},
		"a list":    {"1, 2"},
		"zero":      {"0"},
		"negative":  {"-1"},
		"spaces":    {" 1"},
		"hex":       {"0x1"},
		"fraction":  {"1.5"},
		"too large": {"9007199254740993"},
		"very long": {strings.Repeat("9", 5000)},
		"text":      {"order:42"},
		"control":   {"1\r\n2"},
	} {
		f, err := httpmw.Fence(http.Header{httpmw.FenceHeader: values})
		if f != 0 || !errors.Is(err, fence.ErrInvalid) || len(err.Error()) > 300 {
			t.Errorf("%s: %d, %v", what, f, err)
		}
	}
	if f, err := httpmw.Fence(http.Header{httpmw.FenceHeader: {"9007199254740992"}}); f != fence.Max || err != nil {
		t.Errorf("%d, %v", f, err)
	}
	if _, err := httpmw.Fence(nil); !errors.Is(err, fence.ErrInvalid) {
		t.Errorf("nil headers: %v", err)
	}
}
