package wiretap

import (
	"bufio"
	"net"
	"sync"
	"testing"
)

// What the client had sent before it could see an answer belongs to the round trip of
// that answer, whether the proxy had taken it off the socket by then or not.
func TestSentBeforeTheAnswer(t *testing.T) {
	t.Parallel()
	const query, ready = "Q\x00\x00\x00\x06a\x00", "Z\x00\x00\x00\x05I"
	for name, c := range map[string]struct {
		first, beforeAnswer, afterAnswer string
		trips                            int
	}{
		"sent with the first":       {query + query, "", "", 1},
		"sent in part":              {query + query[:3], "", query[3:], 1},
		"sent but not taken":        {query, query, "", 1},
		"sent but not taken whole":  {query, query[:1], query[1:], 1},
		"sent after the answer":     {query, "", query, 2},
		"the last data of a COPY":   {query, "c\x00\x00\x00\x04", query, 2},
		"sent behind such data too": {query, "c\x00\x00\x00\x04" + query, "", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client, clientEnd := tcpPair(t)
			server, serverEnd := tcpPair(t)
			p := &Proxy{}
			p.changed = sync.NewCond(&p.mu)
			l := &link{proxy: p, ends: [2]*net.TCPConn{clientEnd, serverEnd}, started: true}
			requestsTo := bufio.NewWriter(gate{l, toServer})
			requests := bufio.NewReader(flushing{requestsTo, clientSocket{l}})
			answersTo := bufio.NewWriter(gate{l, toClient})
			answers := bufio.NewReader(flushing{answersTo, serverEnd})
			do := func(err error) {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
			}
			send := func(to *net.TCPConn, text string) {
				t.Helper()
				_, err := to.Write([]byte(text))
				do(err)
			}
			send(client, c.first)
			do(l.request(requests, requestsTo, true))
			send(client, c.beforeAnswer)
			send(server, ready)
			do(l.answer(answers, answersTo))
			send(client, c.afterAnswer)
			for len(p.executed) < 2 {
				do(l.request(requests, requestsTo, true))
			}
			if p.roundTrips != c.trips {
				t.Errorf("%d round trips, want %d", p.roundTrips, c.trips)
			}
			send(server, ready)
			do(l.answer(answers, answersTo))
			send(client, query)
			do(l.request(requests, requestsTo, true))
			if p.roundTrips != c.trips+1 {
				t.Errorf("%d round trips after one more, want %d", p.roundTrips, c.trips+1)
			}
		})
	}
}

func tcpPair(t *testing.T) (near, far *net.TCPConn) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	dialed, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	accepted, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = dialed.Close(), accepted.Close() })
	return dialed.(*net.TCPConn), accepted.(*net.TCPConn)
}
