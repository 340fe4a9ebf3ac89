package sqltx

import "time"

// WaitFor shortens how long abandoned transactions wait for the program.
func (p *Pool) WaitFor(d time.Duration) { p.patience = d }
