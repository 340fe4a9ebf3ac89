package operations

var n int
