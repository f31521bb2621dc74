// Command evidence writes what the conformance runs of "make test" have shown into a document,
// as a table between two comments:
//
//	<!-- evidence: begin -->
//	<!-- evidence: end -->
//
// With -check it changes nothing, and fails where the table does not say what was shown. The
// versions of the servers are not compared: they differ from machine to machine.
package main

import (
	"flag"
	"fmt"
	"log"
	"os"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("evidence: ")
	from := flag.String("from", "", "`folder` of the records, one for each backend")
	doc := flag.String("doc", "", "`file` with the table")
	check := flag.Bool("check", false, "only compare")
	flag.Parse()
	if err := run(*from, *doc, *check); err != nil {
		log.Fatal(err)
	}
}

func run(from, doc string, check bool) error {
	records, err := read(from)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(doc) //nolint:gosec // G304: the file that was asked for
	if err != nil {
		return err
	}
	shown, err := tableOf(records)
	if err != nil {
		return err
	}
	if check {
		return compare(string(text), shown, doc)
	}
	mended, err := replace(string(text), shown)
	if err != nil {
		return fmt.Errorf("%s: %w", doc, err)
	}
	return os.WriteFile(doc, []byte(mended), 0o644) //nolint:gosec // G306: a document
}
