package web

import (
	"net/http"
	"net/http/httptest"

	"github.com/gormlock/gormlock/tests/docs/runner"
)

type Document struct {
	ID          int64
	Title, Body string
	Version     int64 `gorm:"not null;default:1" gormlock:"version"`
}

var (
	id int64 = 1
	w  http.ResponseWriter
	r  *http.Request

	doc  = Document{Version: 7}
	form = struct {
		Title, Body string
		Version     int64
	}{"new title", "new text", 7}
)

func setup(world *runner.World) {
	world.Tables(&Document{})
	world.Rows(&Document{ID: id, Title: "old", Body: "text", Version: 7})
	w, r = httptest.NewRecorder(), httptest.NewRequest("PUT", "/documents/1", nil)
	r.Header.Set("If-Match", `"7"`)
}
