// Package pb is what a generator made of a description of a service.
package pb

import (
	"context"

	"google.golang.org/grpc"
)

type PlanRequest struct{ Day string }
type PlanReply struct{ Load int64 }

type PlannerClient interface {
	Plan(ctx context.Context, in *PlanRequest, opts ...grpc.CallOption) (*PlanReply, error)
}

type plannerClient struct {
	cc grpc.ClientConnInterface
}

func NewPlannerClient(cc grpc.ClientConnInterface) PlannerClient {
	return &plannerClient{cc}
}

func (c *plannerClient) Plan(ctx context.Context, in *PlanRequest, opts ...grpc.CallOption) (*PlanReply, error) {
	out := new(PlanReply)
	if err := c.cc.Invoke(ctx, "/Planner/Plan", in, out, opts...); err != nil {
		return nil, err
	}
	return out, nil
}
