package operations

var n = 1000
