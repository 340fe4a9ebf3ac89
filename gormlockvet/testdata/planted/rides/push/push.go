// Package push sends notes to telephones. It does not use GORM.
package push

import (
	"bytes"
	"context"
	"net/http"
)

type Client struct{ HTTP *http.Client }

func (c *Client) Notify(ctx context.Context, device, text string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://localhost/"+device, bytes.NewBufferString(text))
	if err != nil {
		return err
	}
	res, err := c.HTTP.Do(req)
	if err != nil {
		return err
	}
	return res.Body.Close()
}
