// Webform is a small server whose documents are edited in forms, and by programs. Two people who edit one document do not
// overwrite each other: what they changed is merged by gormlock.SaveMerged, and where both changed the same field, the
// second sees both versions side by side and chooses. Programs name the version that they have read, in If-Match.
//
//	go -C examples run ./webform
//
// Open the address that it prints in two windows, change the title in both, and save both. Programs use the same documents:
//
//	curl -i localhost:8080/documents/1
//	curl -i -X PATCH -H 'If-Match: "1"' -d '{"title": "by a program"}' localhost:8080/documents/1
//
// It runs on the server of DATABASE_URL or GORMLOCK_TEST_DSN, in a schema of its own that it drops at the end, or, where
// neither is set, on a throw-away server.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/gormlock/gormlock/examples/internal/place"
)

func main() {
	place.Main("webform", func(ctx context.Context) (err error) {
		p, err := newPlace(ctx, place.Given())
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, p.Leave()) }()
		listener, err := new(net.ListenConfig).Listen(ctx, "tcp", cmp.Or(os.Getenv("ADDR"), "localhost:8080"))
		if err != nil {
			return err
		}
		fmt.Printf("http://%s/documents/1/edit\n", listener.Addr())
		s := &http.Server{Handler: server{p.DB}.handler(), ReadHeaderTimeout: 10 * time.Second}
		context.AfterFunc(ctx, func() { _ = s.Close() })
		if err := s.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
}

// newPlace makes the documents.
func newPlace(ctx context.Context, dsn string) (*place.Place, error) {
	p, err := place.New(ctx, dsn, "webform")
	if err != nil {
		return nil, err
	}
	first := Document{Fields: Fields{Title: "Draft", Body: "One line.\nAnother line."}}
	if err := p.DB.AutoMigrate(&Document{}); err != nil {
		return nil, errors.Join(err, p.Leave())
	}
	if err := p.DB.Create(&first).Error; err != nil {
		return nil, errors.Join(err, p.Leave())
	}
	return p, nil
}
