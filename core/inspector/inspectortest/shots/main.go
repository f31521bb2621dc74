// Shots takes pictures of the page of package inspector, for README and docs:
//
//	go run ./shots -url http://127.0.0.1:8420/ -to ../../../docs
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

type step = chromedp.Action[chromedp.Void]

// shot is a picture.
type shot struct {
	file          string
	width, height int64
	dark          bool
	hash          string
	actions       []step
}

func main() {
	url := flag.String("url", "http://127.0.0.1:8420/", "where the page is")
	to := flag.String("to", ".", "where the pictures go")
	all := flag.Bool("all", false, "take pictures of narrow and dark pages, too, for the eye")
	flag.Parse()
	if err := run(*url, *to, *all); err != nil {
		fmt.Fprintln(os.Stderr, "shots:", err)
		os.Exit(1)
	}
}

const wide, tall = 1240, 760

func run(url, to string, all bool) error {
	opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox, chromedp.Flag("hide-scrollbars", true))
	ctx, cancel := chromedp.NewExecAllocator(context.Background(), opts...)
	defer cancel()
	ctx, cancel = chromedp.NewContext(ctx)
	defer cancel()
	ctx, cancel = context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	open := chromedp.Evaluate[chromedp.Void](`document.querySelector("#table .open").click()`)
	chart := chromedp.WaitVisible(chromedp.CSS("#chart svg"))
	shots := []shot{
		{"inspector-now.png", wide, tall, false, "#now", []step{open}},
		{"inspector-time.png", wide, 520, true, "#time", []step{chart}},
	}
	if all {
		shots = append(shots,
			shot{"all-now-dark.png", wide, tall, true, "#now", []step{open}},
			shot{"all-now-group.png", wide, tall, false, "#now", []step{chromedp.Click(chromedp.CSS("#group"))}},
			shot{"all-now-narrow.png", 390, 800, false, "#now", []step{open}},
			shot{"all-time-light.png", wide, tall, false, "#time", []step{chart}},
			shot{"all-time-narrow.png", 390, 1000, true, "#time", []step{chart}},
			shot{"all-markers.png", wide, tall, false, "#markers", nil},
			shot{"all-markers-narrow.png", 390, 800, true, "#markers", nil},
			shot{"all-health.png", wide, tall, false, "#health", nil},
			shot{"all-ask.png", wide, tall, true, "#now", []step{open, chromedp.Click(chromedp.CSS(`[data-act^="release"]`))}})
	}
	for _, s := range shots {
		if err := s.take(ctx, url, to); err != nil {
			return fmt.Errorf("%s: %w", s.file, err)
		}
	}
	return nil
}

func (s shot) take(ctx context.Context, url, to string) error {
	scheme := "light"
	if s.dark {
		scheme = "dark"
	}
	steps := []step{
		chromedp.EmulateViewport(s.width, s.height, chromedp.EmulateScale(1)),
		chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
			_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
				Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
			})
			return err
		}),
		chromedp.Navigate("about:blank"),
		chromedp.Navigate(url + s.hash),
		chromedp.WaitVisible(chromedp.CSS(`#state[data-state="live"]`)),
		chromedp.Sleep(500 * time.Millisecond),
	}
	steps = append(steps, s.actions...)
	steps = append(steps, chromedp.Sleep(1500*time.Millisecond))
	if err := chromedp.Do(ctx, steps...); err != nil {
		return err
	}
	png, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(to, s.file), png, 0o644) //nolint:gosec // G306: a picture for everybody
}
