package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/gormlock/gormlock/internal/chromium"
	"github.com/gormlock/gormlock/internal/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// site is the example, and its database.
type site struct {
	server
	t   testing.TB
	url string // of the document
}

func newSite(t testing.TB) site {
	t.Helper()
	p, err := newPlace(t.Context(), pgtest.DSN(t))
	if err != nil {
		t.Fatal(err)
	}
	s := server{p.DB}
	web := httptest.NewServer(s.handler())
	t.Cleanup(func() {
		web.Close()
		if err := p.Leave(); err != nil {
			t.Error(err)
		}
	})
	return site{s, t, web.URL + "/documents/1"}
}

func (s site) stored() Document {
	s.t.Helper()
	var doc Document
	if err := s.db.First(&doc, 1).Error; err != nil {
		s.t.Fatal(err)
	}
	return doc
}

// answered is what came back.
type answered struct {
	status    int
	tag, text string
}

// ask sends a request with a body, if there is one, and the values of headers.
func (s site) ask(client *http.Client, method, body string, header ...string) (answered, error) {
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.url, strings.NewReader(body))
	if err != nil {
		return answered{}, err
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	response, err := client.Do(r)
	if err != nil {
		return answered{}, err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	return answered{response.StatusCode, response.Header.Get("ETag"), string(text)}, err
}

// What a program is answered, over real HTTP.
func TestPrograms(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for _, c := range []struct {
		method, body string
		header       []string
		status       int
		says         string
	}{
		{"GET", "", nil, 200, `"Title":"Draft"`},
		{"GET", "", []string{"If-None-Match", `"1"`}, 304, ""},
		{"HEAD", "", []string{"If-None-Match", `W/"1"`}, 304, ""},
		{"PATCH", `{"title": "lost"}`, nil, 428, `"reason":"required"`},
		{"PATCH", `{"title": "lost"}`, []string{"If-Match", `1`}, 400, `"reason":"malformed"`},
		{"PATCH", `{"title": "lost"}`, []string{"If-Match", `"2"`}, 412, `"reason":"stale"`},
		{"PATCH", `{"title": "lost"}`, []string{"If-Match", `W/"1"`}, 412, `"reason":"stale"`},
		{"PATCH", `{"version": 9}`, []string{"If-Match", `"1"`}, 400, "bad request"},
		{"PATCH", `{}`, []string{"If-Match", `"1"`}, 400, "it changes nothing"},
		{"PATCH", `{"title": "one"}`, []string{"If-Match", `"1"`}, 204, ""},
		{"PATCH", `{"title": "lost"}`, []string{"If-Match", `"1"`}, 412, `"reason":"stale"`},
		{"PATCH", `{"reviews": 3}`, []string{"If-Match", `"1"`, "If-Match", `"2"`}, 204, ""},
		{"PATCH", `{"title": "two"}`, []string{"If-Match", `*`}, 204, ""},
		{"GET", "", []string{"If-None-Match", `"1"`}, 200, `"Reviews":3`},
	} {
		answer, err := s.ask(http.DefaultClient, c.method, c.body, c.header...)
		if err != nil {
			t.Fatal(err)
		}
		if answer.status != c.status || !strings.Contains(answer.text, c.says) {
			t.Errorf("%s %s %q: %+v", c.method, c.body, c.header, answer)
		}
	}
	if doc := s.stored(); doc.Version != 4 || doc.Fields != (Fields{"two", "One line.\nAnother line.", 3}) {
		t.Errorf("%+v", doc)
	}
}

// rush lets clients add to the number of reviews, each after it has read it, with the tag that it read or another value of
// If-Match. It counts the answers.
func (s site) rush(patches int64, ifMatch string) (stored, refused int64) {
	const clients = 8
	var begun, kept, stale atomic.Int64
	var wg sync.WaitGroup
	for range clients {
		wg.Go(func() {
			client := &http.Client{Transport: &http.Transport{}}
			defer client.CloseIdleConnections()
			for begun.Add(1) <= patches {
				read, err := s.ask(client, http.MethodGet, "")
				var doc Fields
				if err == nil {
					err = json.Unmarshal([]byte(read.text), &doc)
				}
				if err != nil {
					s.t.Error(err)
					return
				}
				tag := read.tag
				if ifMatch != "" {
					tag = ifMatch
				}
				answer, err := s.ask(client, http.MethodPatch, fmt.Sprintf(`{"reviews": %d}`, doc.Reviews+1), "If-Match", tag)
				switch {
				case err != nil:
					s.t.Error(err)
					return
				case answer.status == http.StatusNoContent:
					kept.Add(1)
				case answer.status == http.StatusPreconditionFailed:
					stale.Add(1)
				default:
					s.t.Errorf("%+v", answer)
				}
			}
		})
	}
	wg.Wait()
	return kept.Load(), stale.Load()
}

// Eight clients send thousands of PATCHes over HTTP. Each is stored or refused, and none that was stored is lost.
func TestTorture_patches(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	patches := int64(pgtest.Rounds(2_000, 10_000))
	stored, refused := s.rush(patches, "")
	doc := s.stored()
	t.Logf("%d PATCHes: %d stored, %d refused; the document has %d reviews, and version %d", patches, stored, refused, doc.Reviews, doc.Version)
	if stored+refused != patches || doc.Reviews != stored || doc.Version != 1+stored {
		t.Error("that does not add up")
	}
	if stored == 0 || refused == 0 {
		t.Error("the clients were not in each other's way")
	}
}

// The control: with If-Match: * each is stored, and some are lost.
func TestPatches_control(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	const patches = 400
	stored, refused := s.rush(patches, "*")
	doc := s.stored()
	if stored != patches || refused != 0 || doc.Version != 1+patches {
		t.Errorf("%d stored, %d refused, version %d", stored, refused, doc.Version)
	}
	if doc.Reviews >= patches {
		t.Errorf("none of %d was lost: this test sees no race", patches)
	}
}

// person is somebody with a browser.
type person struct {
	*chromium.Browser
	t *testing.T
}

// types fills a field of the form.
func (p person) types(name, text string) {
	p.t.Helper()
	p.Eval(fmt.Sprintf("document.querySelector('[name=%s]').value = %q", name, text))
}

// saves presses the button, and waits for the next page, which has what is looked for.
func (p person) saves(until string) {
	p.t.Helper()
	p.Eval("document.documentElement.dataset.before = true")
	p.leaves()
	p.Wait("document.readyState === 'complete' && !document.documentElement.dataset.before && !!document.querySelector('main')")
	if found := p.Eval(fmt.Sprintf("!!document.querySelector(%q)", until)); found != true {
		p.t.Fatalf("there is no %s: %v", until, p.Eval("document.body.innerText"))
	}
}

// leaves presses the button, behind the answer to it.
func (p person) leaves() {
	p.t.Helper()
	p.Eval("setTimeout(() => document.querySelector('button').click()) && true")
}

func (p person) text(selector string) string {
	p.t.Helper()
	text, _ := p.Eval(fmt.Sprintf("document.querySelector(%q).innerText.trim()", selector)).(string)
	return text
}

// Two people edit one document in real browsers. What they changed in different fields is merged; where both changed one, the
// second sees both versions side by side, and what they choose is stored.
func TestTwoBrowsers(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	ann, bob := person{chromium.New(t), t}, person{chromium.New(t), t}
	ann.Open(s.url + "/edit")
	bob.Open(s.url + "/edit")

	ann.types("title", `Ann's <b>"title"</b>`)
	ann.types("reviews", "7")
	ann.saves("#saved")
	s.mustBe("Ann has saved", Document{1, Fields{`Ann's <b>"title"</b>`, "One line.\nAnother line.", 7}, 2})

	bob.types("body", "Bob's line.\nAnother line.")
	bob.saves("#saved")
	s.mustBe("Bob has changed another field", Document{1, Fields{`Ann's <b>"title"</b>`, "Bob's line.\nAnother line.", 7}, 3})
	if title := bob.Eval("document.querySelector('[name=title]').value"); title != `Ann's <b>"title"</b>` {
		t.Errorf("Bob's page shows the title %q", title)
	}

	ann.types("title", "Ann's second title") // her page is the one of version 2
	ann.saves("#saved")
	after := Document{1, Fields{"Ann's second title", "Bob's line.\nAnother line.", 7}, 4}
	s.mustBe("Ann has saved again", after)
	bob.types("title", "Bob's title")
	bob.types("reviews", "8")
	bob.saves("table")
	s.mustBe("Bob has not chosen yet", after)
	bob.mustShow(map[string]string{
		"#title .base": `Ann's <b>"title"</b>`, "#title .mine": "Bob's title", "#title .theirs": "Ann's second title",
		"#reviews .base": "7", "#reviews .mine": "8", "#reviews .theirs": "7", "#body .same": "Bob's line.\nAnother line.",
	})
	for selector, want := range map[string]bool{
		"#title.both": true, "#reviews.both": false, "#title :checked": false, "#reviews .mine :checked": true, "#body [type=radio]": false,
	} {
		if got := bob.Eval(fmt.Sprintf("!!document.querySelector(%q)", selector)); got != want {
			t.Errorf("%s: %v", selector, got)
		}
	}
	if valid := bob.Eval("document.querySelector('form').checkValidity()"); valid != false {
		t.Error("Bob may save before he has chosen a title")
	}

	// A program stores another title while Bob is choosing: he chooses again.
	if answer, err := s.ask(http.DefaultClient, "PATCH", `{"title": "a program's"}`, "If-Match", `"4"`); err != nil || answer.status != http.StatusNoContent {
		t.Fatal(answer, err)
	}
	bob.chooses("#title .mine input")
	bob.saves("table")
	bob.mustShow(map[string]string{"#title .theirs": "a program's", "#title .base": "Ann's second title"})
	after.Title, after.Version = "a program's", 5
	s.mustBe("Bob has to choose again", after)
	bob.chooses("#title .mine input")
	bob.saves("#saved")
	s.mustBe("Bob has chosen", Document{1, Fields{"Bob's title", "Bob's line.\nAnother line.", 8}, 6})

	// The document goes while Ann looks at it.
	ann.Open(s.url + "/edit")
	if err := s.db.Exec("DELETE FROM documents").Error; err != nil {
		t.Fatal(err)
	}
	ann.types("title", "Ann's third title")
	ann.leaves()
	ann.Wait("document.body.innerText.includes('It is not there')")
}

func (s site) mustBe(when string, want Document) {
	s.t.Helper()
	if got := s.stored(); got != want {
		s.t.Errorf("%s: %+v, want %+v", when, got, want)
	}
}

func (p person) mustShow(want map[string]string) {
	p.t.Helper()
	for selector, text := range want {
		if got := p.text(selector); got != text {
			p.t.Errorf("%s is %q, want %q", selector, got, text)
		}
	}
}

// chooses takes one side.
func (p person) chooses(selector string) {
	p.t.Helper()
	p.Eval(fmt.Sprintf("document.querySelector(%q).click()", selector))
}

// What a browser may send that no page of ours made.
func TestForms(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for _, c := range []struct {
		form   string
		status int
	}{
		{"title=lost&body=&reviews=1", 400},
		{"title=lost&body=&reviews=1&base.reviews=0", 400},
		{"title=lost&body=&reviews=1&base.reviews=0&version=x", 400},
		{"title=lost&body=&reviews=x&base.reviews=0&version=1", 400},
		{"title=lost&body=&reviews=1&base.reviews=0&version=0", 428},
		{"title=lost&body=&reviews=1&base.reviews=0&base.title=other&version=1", 409},
		{"title=lost&body=" + strings.Repeat("x", largestBody) + "&version=1", 400},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/edit", strings.NewReader(c.form))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		if answer.StatusCode != c.status {
			t.Errorf("%.80s: %d, want %d", c.form, answer.StatusCode, c.status)
		}
	}
	s.mustBe("after all of them", Document{1, Fields{"Draft", "One line.\nAnother line.", 0}, 1})
}
