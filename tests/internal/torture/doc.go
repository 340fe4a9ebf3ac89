// Package torture is what the tests of locks between processes share: workers that fight for registers, a scene that
// disturbs them, and the proof that at most one of them held a register at a time.
//
// A worker is a process of its own, so that one can be killed and stopped: the test binary with WorkerDSN in its
// environment, whose TestMain is Main. A Scene starts workers and keeps the events that they
// tell, and Scene.Check compares those with a model of a lock and one of a fence.
package torture
