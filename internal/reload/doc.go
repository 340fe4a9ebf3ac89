// Package reload reads rows of loaded structs again, under a lock: LockRow, LockRows, Touch and VerifyVersion.
package reload
