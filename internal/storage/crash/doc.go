// Package crash cuts the power at every file operation of every durable format.
//
// It holds tests only. A story drives the code that writes a format; the explorer
// stops it ahead of each operation, makes the disks that a power cut or a kill
// may leave there, and has the code that a node starts with open them.
package crash
