package sessionlock_test

import (
	"net"
	"syscall"
)

// losePackets makes a connection lose every packet that arrives: the peer's kernel gets no answers any more, not even to its probes.
func losePackets(c *net.TCPConn) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var attached error
	err = raw.Control(func(fd uintptr) {
		nothing := []syscall.SockFilter{{Code: syscall.BPF_RET | syscall.BPF_K, K: 0}}
		attached = syscall.AttachLsf(int(fd), nothing) //nolint:staticcheck // there is no other way in the standard library
	})
	if err == nil {
		err = attached
	}
	return err
}
