package observe

import (
	"context"
	"log/slog"
)

// Slog writes each event as one line: what is lost, fenced, given up or taken over as a warning, what did not succeed (not
// acquired, timed out, stale, retried, failed) as information, the rest for debugging. Empty fields are left out, and an
// event below the logger's level costs nothing. A nil logger stands for [slog.Default] at the time of the event.
func Slog(logger *slog.Logger) Observer { return logged{logger} }

type logged struct{ logger *slog.Logger }

func (l logged) Observe(ctx context.Context, e Event) {
	logger := l.logger
	if logger == nil {
		logger = slog.Default()
	}
	level := levelOf(e.Kind)
	if !logger.Enabled(ctx, level) {
		return
	}
	logger.LogAttrs(ctx, level, "gormlock: "+e.Kind.String(), attributes(e)...)
}

func levelOf(k Kind) slog.Level {
	switch k {
	case Lost, Fenced, GivenUp, Dead, TakenOver:
		return slog.LevelWarn
	case NotAcquired, TimedOut, Stale, Retried, Failed:
		return slog.LevelInfo
	case Acquired, Released, Claimed, Done, Later:
	}
	return slog.LevelDebug
}

func attributes(e Event) []slog.Attr {
	var room [10]slog.Attr
	list := room[:0]
	for _, text := range [...]struct{ name, value string }{
		{"source", e.Source}, {"key", e.Key}, {"table", e.Table}, {"mode", e.Mode}, {"owner", e.Owner},
	} {
		if text.value != "" {
			list = append(list, slog.String(text.name, text.value))
		}
	}
	if e.Token != 0 {
		list = append(list, slog.Int64("token", e.Token))
	}
	if e.Kind == Claimed || e.Rows != 0 {
		list = append(list, slog.Int64("rows", e.Rows))
	}
	if e.Wait != 0 {
		list = append(list, slog.Duration("wait", e.Wait))
	}
	if e.Held != 0 {
		list = append(list, slog.Duration("held", e.Held))
	}
	if e.Err != nil {
		list = append(list, slog.Any("err", e.Err))
	}
	return list
}
