// Package grpc has the names of gRPC that the programs need.
package grpc

import "context"

// CallOption changes a call.
type CallOption interface{ apply() }

// ClientConnInterface is what generated clients call.
type ClientConnInterface interface {
	Invoke(ctx context.Context, method string, args, reply any, opts ...CallOption) error
}

// ClientConn is a connection.
type ClientConn struct{}

// Invoke calls.
func (c *ClientConn) Invoke(ctx context.Context, method string, args, reply any, opts ...CallOption) error {
	return nil
}
