//go:build !linux

package sessionlock_test

import (
	"errors"
	"net"
)

func losePackets(*net.TCPConn) error { return errors.ErrUnsupported }
