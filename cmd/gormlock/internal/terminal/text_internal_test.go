package terminal

import (
	"testing"
	"time"
)

func TestOneLine_movesNoCursor(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"":                          "",
		"select\n\t1 ":              "select 1",
		"\x1b[2Jgone":               `\x1b[2Jgone`,
		"a\x00b\x07":                `a\x00b\a`,
		"right\u202eleft":           `right\u202eleft`,
		"日本 語":                      "日本 語",
		"bad \xff":                  "bad \ufffd",
		"  lead":                    "lead",
		"\u009b31m eight bit":       `\u009b31m eight bit`,
		"<script>alert(1)</script>": "<script>alert(1)</script>",
	} {
		if got := OneLine(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestSpan(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		-time.Second: "0s", 0: "0s", 999 * time.Millisecond: "0s", 59 * time.Second: "59s", time.Minute: "1m", 61 * time.Second: "1m1s",
		time.Hour: "1h", 90 * time.Minute: "1h30m", 24 * time.Hour: "1d", 49 * time.Hour: "2d1h", 1000 * time.Hour: "41d16h",
	} {
		if got := Span(d); got != want {
			t.Errorf("%s: %s, want %s", d, got, want)
		}
	}
}

func TestThousands(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 100000: "100,000", -1234567: "-1,234,567"} {
		if got := Thousands(n); got != want {
			t.Errorf("%d: %s", n, got)
		}
	}
}

func TestClip_countsNoColours(t *testing.T) {
	t.Parallel()
	if got := Clip("\x1b[31mred\x1b[0m and", 3); got != "\x1b[31mred\x1b[0m\x1b[0m" {
		t.Errorf("%q", got)
	}
	if got := Clip("日本語", 2); got != "日本\x1b[0m" {
		t.Errorf("%q", got)
	}
	if got := Clip("short", 80); got != "short" {
		t.Errorf("%q", got)
	}
}
