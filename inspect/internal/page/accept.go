package page

import (
	"mime"
	"net/http"
	"strconv"
	"strings"
)

// PrefersJSON reports whether the client would rather have JSON than the page.
func PrefersJSON(h http.Header) bool {
	var asJSON, asHTML float64
	for _, field := range h.Values("Accept") {
		for item := range strings.SplitSeq(field, ",") {
			kind, parameters, err := mime.ParseMediaType(item)
			if err != nil {
				continue
			}
			q := 1.0
			if text, ok := parameters["q"]; ok {
				if q, err = strconv.ParseFloat(text, 64); err != nil {
					q = 0
				}
			}
			switch kind {
			case "application/json":
				asJSON = max(asJSON, q)
			case "text/html", "application/xhtml+xml":
				asHTML = max(asHTML, q)
			}
		}
	}
	return asJSON > asHTML
}
