// Package sms sends messages.
package sms

import (
	"context"
	"net/http"
	"net/url"
)

type Sender interface {
	Send(ctx context.Context, to, text string) error
}

type gateway struct{ http *http.Client }

func New(c *http.Client) Sender { return &gateway{c} }

func (g *gateway) Send(ctx context.Context, to, text string) error {
	res, err := g.http.PostForm("http://localhost/"+to, url.Values{"text": {text}})
	if err != nil {
		return err
	}
	return res.Body.Close()
}

// Queue keeps messages until Flush.
type Queue struct {
	sender  Sender
	waiting []string
}

func (q *Queue) Add(text string) { q.waiting = append(q.waiting, text) }

func (q *Queue) Flush(ctx context.Context) error {
	for _, text := range q.waiting {
		if err := q.sender.Send(ctx, "all", text); err != nil {
			return err
		}
	}
	q.waiting = nil
	return nil
}
