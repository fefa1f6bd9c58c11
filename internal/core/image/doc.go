// Package image holds the immutable picture of the cluster that the metadata
// log adds up to.
package image
