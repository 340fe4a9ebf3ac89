package pgtest

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"gorm.io/gorm/logger"
)

// Logger is a logger of GORM that keeps warnings and errors.
type Logger struct {
	logger.Interface
	mu    sync.Mutex
	lines []string
}

// NewLogger returns a logger without lines, which writes nothing.
func NewLogger() *Logger { return &Logger{Interface: logger.Discard} }

// LogMode implements [logger.Interface]: all levels are the same.
func (l *Logger) LogMode(logger.LogLevel) logger.Interface { return l }

// Warn implements [logger.Interface].
func (l *Logger) Warn(_ context.Context, format string, args ...any) { l.keep(format, args) }

// Error implements [logger.Interface].
func (l *Logger) Error(_ context.Context, format string, args ...any) { l.keep(format, args) }

func (l *Logger) keep(format string, args []any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, fmt.Sprintf(format, args...))
}

// Lines returns the warnings and errors, from the first.
func (l *Logger) Lines() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.lines)
}
