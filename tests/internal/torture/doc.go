// Package torture is what the tests of locks between processes share: workers that compete for registers, a scene that disturbs them, and the proof
// that at most one of them held a register at a time.
//
// A worker is a separate process, so that it can be killed and stopped: the test binary with WorkerDSN in its environment, whose TestMain is Main.
// A Scene starts workers and keeps their events. Scene.Check compares these with a model of a lock and a model of a fence.
package torture
