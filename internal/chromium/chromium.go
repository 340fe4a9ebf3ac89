// Package chromium lets tests look at pages in a real browser.
package chromium

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// Browser is a headless Chromium that is told what to do through a pipe, by its DevTools
// protocol. Its methods end the test when something is wrong.
type Browser struct {
	t       *testing.T
	in      io.Writer
	answers *bufio.Reader
	mu      sync.Mutex
	id      int
	session string
}

// New starts one. Without Chromium the test is skipped, unless GORMLOCK_CHROMIUM is
// "required", as it is in .ci/run.
func New(t *testing.T) *Browser {
	t.Helper()
	path := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "chrome"} {
		if found, err := exec.LookPath(name); err == nil && path == "" {
			path = found
		}
	}
	if path == "" {
		if os.Getenv("GORMLOCK_CHROMIUM") == "required" {
			t.Fatal("there is no Chromium: scripts/require-chromium installs one")
		}
		t.Skip("there is no Chromium: scripts/require-chromium installs one")
	}
	home, err := os.MkdirTemp("", "gormlock-chromium")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(home) }) // its children may still be ending
	flags := []string{
		"--headless=new", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--no-proxy-server", "--hide-scrollbars",
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-extensions",
		"--user-data-dir=" + filepath.Join(home, "profile"), "--remote-debugging-pipe",
	}
	if os.Getuid() == 0 {
		flags = append(flags, "--no-sandbox")
	}
	readIn, writeIn, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	readOut, writeOut, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(path, append(flags, "about:blank")...)
	command.Env = append(os.Environ(), "HOME="+home, "XDG_CONFIG_HOME="+home, "XDG_CACHE_HOME="+home)
	command.ExtraFiles = []*os.File{readIn, writeOut} // 3 and 4
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	_, _ = readIn.Close(), writeOut.Close()
	b := &Browser{t: t, in: writeIn, answers: bufio.NewReaderSize(readOut, 1<<20)}
	t.Cleanup(func() {
		_, _ = io.WriteString(writeIn, `{"id":1000000,"method":"Browser.close"}`+"\x00")
		ended := time.AfterFunc(10*time.Second, func() { _ = command.Process.Kill() })
		_, _ = io.Copy(io.Discard, readOut)
		_ = command.Wait()
		ended.Stop()
		_, _ = writeIn.Close(), readOut.Close()
	})
	ended := time.AfterFunc(2*time.Minute, func() { _ = command.Process.Kill() })
	t.Cleanup(func() { ended.Stop() })
	target := b.Call("Target.createTarget", map[string]any{"url": "about:blank"})["targetId"]
	b.session = b.Call("Target.attachToTarget", map[string]any{"targetId": target, "flatten": true})["sessionId"].(string)
	b.Call("Page.enable", nil)
	return b
}

// Call sends a command and returns its result; what else the browser says is dropped.
func (b *Browser) Call(method string, params map[string]any) map[string]any {
	b.t.Helper()
	result, err := b.send(method, params)
	if err != nil {
		b.t.Fatalf("%s: %v", method, err)
	}
	return result
}

// send does so, and returns what the browser refuses as an error.
func (b *Browser) send(method string, params map[string]any) (map[string]any, error) {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.id++
	message := map[string]any{"id": b.id, "method": method, "params": params}
	if params == nil {
		message["params"] = map[string]any{}
	}
	if b.session != "" {
		message["sessionId"] = b.session
	}
	text, err := json.Marshal(message)
	if err != nil {
		b.t.Fatal(err)
	}
	if _, err := b.in.Write(append(text, 0)); err != nil {
		b.t.Fatalf("%s: %v", method, err)
	}
	for {
		line, err := b.answers.ReadBytes(0)
		if err != nil {
			b.t.Fatalf("%s: the browser has gone: %v", method, err)
		}
		var answer struct {
			ID     int
			Result map[string]any
			Error  *struct{ Message string }
		}
		if err := json.Unmarshal(line[:len(line)-1], &answer); err != nil {
			b.t.Fatalf("%s: %v in %s", method, err, line)
		}
		if answer.ID != b.id {
			continue
		}
		if answer.Error != nil {
			return nil, errors.New(answer.Error.Message)
		}
		return answer.Result, nil
	}
}

// Eval is the value of a JavaScript expression. One that leaves the page has to leave it later, as setTimeout does: the browser
// answers from the page.
func (b *Browser) Eval(expression string) any {
	b.t.Helper()
	value, err := b.eval(expression)
	if err != nil {
		b.t.Fatalf("%s: %v", expression, err)
	}
	return value
}

func (b *Browser) eval(expression string) (any, error) {
	b.t.Helper()
	answer, err := b.send("Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true, "awaitPromise": true})
	if err != nil {
		return nil, err
	}
	if details, failed := answer["exceptionDetails"]; failed {
		return nil, fmt.Errorf("%v", details)
	}
	return answer["result"].(map[string]any)["value"], nil
}

// Wait waits until a JavaScript expression is true. Between two pages it may be about none.
func (b *Browser) Wait(expression string) {
	b.t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; <-time.After(20 * time.Millisecond) {
		value, err := b.eval(expression)
		if value == true {
			return
		}
		if time.Now().After(deadline) {
			b.t.Fatalf("never true: %s, %v, in %v", expression, err, b.Eval("document.documentElement.outerHTML"))
		}
	}
}

// Open goes to a page that has a main element, and waits until it is there.
func (b *Browser) Open(address string) {
	b.t.Helper()
	b.Call("Page.navigate", map[string]any{"url": address})
	b.Wait("document.readyState === 'complete' && location.href !== 'about:blank' && !!document.querySelector('main')")
}

// Screen sets the size and the colours.
func (b *Browser) Screen(width, height int, scheme string, mobile bool) {
	b.t.Helper()
	scale := 1
	if mobile {
		scale = 2
	}
	b.Call("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": height, "deviceScaleFactor": scale, "mobile": mobile})
	b.Call("Emulation.setEmulatedMedia", map[string]any{"features": []any{map[string]any{"name": "prefers-color-scheme", "value": scheme}}})
}

// Shoot returns what is on the screen as a PNG, and keeps it in the directory that
// GORMLOCK_SCREENSHOTS names.
func (b *Browser) Shoot(name string) []byte {
	b.t.Helper()
	data, err := base64.StdEncoding.DecodeString(fmt.Sprint(b.Call("Page.captureScreenshot", map[string]any{"format": "png"})["data"]))
	if err != nil {
		b.t.Fatal(err)
	}
	if dir := os.Getenv("GORMLOCK_SCREENSHOTS"); dir != "" {
		if err := os.WriteFile(filepath.Join(dir, name+".png"), data, 0o644); err != nil {
			b.t.Fatal(err)
		}
	}
	return data
}
