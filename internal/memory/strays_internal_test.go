package memory

import (
	"reflect"
	"runtime"
	"testing"
)

// What was forgotten is kept by the program alone: it stays astray as long as it lives, and is swept away when it has gone.
func TestStrays_forgotten(t *testing.T) { //nolint:paralleltest // it counts strays
	type row struct{ Version, Balance int }
	list, single := make([]row, 1000), &row{Version: 2}
	others := make([]*row, 100)
	for i := range others {
		others[i] = &row{Version: i}
	}
	all := make([]reflect.Value, 0, len(list)+len(others)+1)
	for i := range list {
		all = append(all, reflect.ValueOf(&list[i]).Elem())
	}
	for _, other := range append(others, single) {
		all = append(all, reflect.ValueOf(other).Elem())
	}
	for _, row := range all {
		StrayRead(row)
	}
	for _, row := range all {
		loosen(row)
	}
	if n := strays.count.Load(); n != int64(len(all)) || int(n) != len(strays.at) {
		t.Fatalf("%d of %d are astray", n, len(all))
	}
	all, others = nil, nil
	runtime.GC()
	sweep()
	if n := strays.count.Load(); int(n) != len(list)+1 || int(n) != len(strays.at) {
		t.Errorf("%d are astray, and %d live", n, len(list)+1)
	}
	if !IsStray(reflect.ValueOf(single).Elem()) || !IsStray(reflect.ValueOf(&list[7]).Elem()) {
		t.Error("what lives is not astray")
	}
	runtime.KeepAlive(list)
	runtime.KeepAlive(single)
	list, single = nil, nil
	runtime.GC()
	sweep()
	if HasStrays() || len(strays.at) > 0 {
		t.Errorf("%d are astray, and none live", strays.count.Load())
	}
}
