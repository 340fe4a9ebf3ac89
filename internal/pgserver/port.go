package pgserver

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// freePort is a port of 127.0.0.1 that nobody listens on now. It lies below the
// range from which the system takes the ports of outgoing connections: those would
// take it while the server is down, a client that keeps calling the missing server
// even connects to itself.
func freePort() (int, error) {
	var last error
	for range 100 {
		port := 15000 + rand.IntN(17000)
		l, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(port)))
		if err != nil {
			last = err
			continue
		}
		return port, l.Close()
	}
	return 0, fmt.Errorf("pgserver: no free port: %w", last)
}
