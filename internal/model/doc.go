// Package model holds what the tags of a model say about its columns, read once for each plugin, and the SQL text made from that.
package model
