package fencing

type Report struct {
	ID    int64
	Body  string
	Fence int64 `gormlock:"fence,key=report"`
}

var report Report
