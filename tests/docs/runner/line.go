package runner

import (
	"regexp"
	"runtime"
	"strconv"
	"strings"
)

// lineOfCaller is the line in a document that the calls on this goroutine began at.
func lineOfCaller() int {
	callers := make([]uintptr, 100)
	frames := runtime.CallersFrames(callers[:runtime.Callers(1, callers)])
	for {
		frame, more := frames.Next()
		if strings.HasSuffix(frame.File, ".md") {
			return frame.Line
		}
		if !more {
			return 0
		}
	}
}

var lineInStack = regexp.MustCompile(`\.md:(\d+)`)

// lineOfAny is the line in a document that the calls on any goroutine began at.
func lineOfAny() int {
	stacks := make([]byte, 1<<20)
	match := lineInStack.FindSubmatch(stacks[:runtime.Stack(stacks, true)])
	if match == nil {
		return 0
	}
	line, _ := strconv.Atoi(string(match[1])) // digits
	return line
}
