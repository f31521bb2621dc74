package inspector

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/operate"
)

// changeRequest is what the page posts.
type changeRequest struct {
	Name   string `json:"name"`
	Handle string `json:"handle"`
	Scope  string `json:"scope"`
}

// ownHeader is one that a page of another origin cannot send without asking first, and here nobody allows
// it: https://cheatsheetseries.owasp.org has it as the custom request header.
const ownHeader = "X-Holdfast-Inspector"

const (
	changeTimeout = 10 * time.Second
	mostBody      = 16 << 10
)

// change takes a name from its holder, or removes a marker.
func (h *Handler) change(w http.ResponseWriter, r *http.Request, marker bool) {
	if site := r.Header.Get("Sec-Fetch-Site"); r.Header.Get(ownHeader) == "" || site != "" && site != "same-origin" ||
		!strings.HasPrefix(r.Header.Get("Content-Type"), "application/json") {
		fail(w, http.StatusForbidden, "this request does not come from the page")
		return
	}
	if h.allow == nil {
		fail(w, http.StatusForbidden, "this page only shows; changes need WithAuthorization, or holdfast ui -allow-release")
		return
	}
	a, err := readAction(http.MaxBytesReader(w, r.Body, mostBody), marker)
	if err != nil {
		fail(w, http.StatusBadRequest, err.Error())
		return
	}
	if !strings.HasPrefix(a.Name, h.prefix) {
		fail(w, http.StatusForbidden, "this page is not about that name")
		return
	}
	who, err := h.allow(r, a)
	if err != nil {
		h.audit(r, a, who, "refused: not allowed", err)
		fail(w, http.StatusForbidden, "you may not do that")
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), changeTimeout) // once begun, its result is recorded
	defer cancel()
	status, result, err := h.do(ctx, a)
	h.audit(r, a, who, result, err)
	if status != http.StatusOK {
		fail(w, status, result)
		return
	}
	answer(w, status, map[string]string{"result": result})
}

func readAction(body interface{ Read([]byte) (int, error) }, marker bool) (a Action, err error) {
	var q changeRequest
	if err := json.NewDecoder(body).Decode(&q); err != nil {
		return a, errors.New("not the JSON that the page sends")
	}
	a = Action{Name: q.Name, Handle: q.Handle, Marker: marker, Scope: q.Scope}
	switch {
	case marker && (a.Name == "" || a.Handle != ""):
		return a, errors.New("a name and a scope, and nothing else")
	case !marker && (a.Name == "" || a.Handle == "" || a.Scope != ""):
		return a, errors.New("a name and a handle")
	}
	return a, nil
}

func (h *Handler) do(ctx context.Context, a Action) (status int, result string, err error) {
	if a.Marker {
		removed, err := h.marks.remove(ctx, a.Name, a.Scope)
		status, result = removal(removed, err)
		return status, result, err
	}
	freed, err := operate.New(h.locks).ForceRelease(ctx, a.Name, a.Handle)
	status, result = release(freed, err)
	return status, result, err
}

const unknown = "unknown: the lock service did not answer"

// release is how the end of a lease came out.
func release(freed bool, err error) (status int, result string) {
	switch {
	case errors.Is(err, core.ErrHeld):
		return http.StatusConflict, "refused: another holder has it now"
	case err != nil:
		return http.StatusServiceUnavailable, unknown
	case !freed:
		return http.StatusConflict, "refused: nobody holds it any more"
	default:
		return http.StatusOK, "released"
	}
}

// removal is how the end of a marker came out.
func removal(removed bool, err error) (status int, result string) {
	switch {
	case errors.Is(err, core.ErrInvalid):
		return http.StatusBadRequest, "refused: not a name and a scope that there can be"
	case err != nil:
		return http.StatusServiceUnavailable, unknown
	case !removed:
		return http.StatusConflict, "refused: there is no such marker any more"
	default:
		return http.StatusOK, "removed"
	}
}

// audit records who took a lock from whom, or let work be done again, or tried to.
func (h *Handler) audit(r *http.Request, a Action, who, result string, err error) {
	what, args := "holdfast: force release", []any{"name", a.Name, "handle", a.Handle}
	if a.Marker {
		what, args = "holdfast: remove marker", []any{"name", a.Name, "scope", a.Scope}
	}
	args = append(args, "result", result, "by", who, "remote", r.RemoteAddr)
	if err != nil {
		args = append(args, "error", err)
	}
	h.log.WarnContext(r.Context(), what, args...)
}
