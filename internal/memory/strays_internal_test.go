package memory

import (
	"reflect"
	"runtime"
	"testing"

	"github.com/gormlock/gormlock/internal/journal"
)

// After its transaction is forgotten, only the program keeps a stray: it stays a stray as long as it exists, and is removed after that.
func TestStrays_forgotten(t *testing.T) { //nolint:paralleltest // it counts strays
	type row struct{ Version, Balance int }
	const many, gone = 1000, 100
	living := struct {
		list   []row
		single *row
	}{make([]row, many), &row{Version: 2}}
	func() {
		all := []reflect.Value{reflect.ValueOf(living.single).Elem()}
		for i := range living.list {
			all = append(all, reflect.ValueOf(&living.list[i]).Elem())
		}
		for range gone {
			all = append(all, reflect.ValueOf(&row{Version: 3}).Elem())
		}
		for _, row := range all {
			StrayRead(&journal.Astray{Undone: true}, row)
		}
		for _, row := range all {
			loosen(row)
		}
	}()
	if n := strays.count.Load(); n != many+1+gone || int(n) != len(strays.at) {
		t.Fatalf("%d are astray", n)
	}
	runtime.GC()
	sweep()
	if n := strays.count.Load(); n != many+1 || int(n) != len(strays.at) {
		t.Errorf("%d are astray, and %d live", n, many+1)
	}
	if !IsStray(reflect.ValueOf(living.single).Elem()) || !IsStray(reflect.ValueOf(&living.list[7]).Elem()) {
		t.Error("what lives is not astray")
	}
	runtime.KeepAlive(living)
	runtime.GC()
	sweep()
	if HasStrays() || len(strays.at) > 0 {
		t.Errorf("%d are astray, and none live", strays.count.Load())
	}
}
