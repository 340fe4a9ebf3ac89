// Package model is what a model says about its columns by its tags, read once for each plugin, and the SQL text made of it.
package model
