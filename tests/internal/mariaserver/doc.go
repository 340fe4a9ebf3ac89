// Package mariaserver starts a throw-away MariaDB for the tests of a package, and opens databases on it.
//
// The server is in a temporary directory and listens on a free port of 127.0.0.1. A small process starts it, waits for the end of a pipe that the
// test binary holds, and then stops the server and removes the directory. So this works even if the test binary was killed. For root the server
// runs as the user mysql, or as nobody if there is no such user.
package mariaserver
