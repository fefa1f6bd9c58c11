package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/tidemark-log/tidemark/internal/dumplog"
)

func (a *App) dumpLog() *cobra.Command {
	var opts dumplog.Options
	var files []string
	var metadata, transactions, offsets bool
	cmd := &cobra.Command{
		Use:   "dump-log FILE...",
		Args:  anyNumber("FILE"),
		Short: "Print the files of a data directory in words, as kafka-dump-log does",
		Long: "Print files of a data directory in words, line by line as kafka-dump-log does: .log, .index, .timeindex, .txnindex,\n" +
			".snapshot and .checkpoint. The options are those of kafka-dump-log.",
		RunE: func(_ *cobra.Command, args []string) error {
			if files = append(files, args...); len(files) == 0 {
				return usagef("the argument FILE is missing")
			}
			chosen := 0
			for decoder, on := range map[dumplog.Decoder]bool{dumplog.ClusterMeta: metadata, dumplog.TransactionLog: transactions, dumplog.Offsets: offsets} {
				if on {
					opts.Decoder, opts.Data = decoder, true
					chosen++
				}
			}
			if chosen > 1 {
				return usagef("the decoders exclude each other: give one")
			}
			return a.dumpFiles(files, opts)
		},
	}
	f := cmd.Flags()
	f.StringSliceVar(&files, "files", nil, "files to print, comma between them; the same as arguments")
	f.BoolVar(&opts.Deep, "deep-iteration", false, "print a line for each record")
	f.BoolVar(&opts.Data, "print-data-log", false, "print keys and values too")
	f.BoolVar(&opts.SkipRecordMetadata, "skip-record-metadata", false, "print only keys and values of records")
	f.BoolVar(&metadata, "cluster-metadata-decoder", false, "read records as metadata of the cluster")
	f.BoolVar(&transactions, "transaction-log-decoder", false, "read records as those of __transaction_state")
	f.BoolVar(&offsets, "offsets-decoder", false, "read records as those of __consumer_offsets")
	return cmd
}

// dumpFiles prints one file after the other and stops at the first that cannot
// be read.
func (a *App) dumpFiles(files []string, opts dumplog.Options) error {
	for _, name := range files {
		if info, err := os.Stat(name); err == nil && info.IsDir() {
			return fmt.Errorf("%s is a directory: name files in it, such as %s", name, filepath.Join(name, "00000000000000000000.log"))
		}
		err := dumplog.File(a.Out, name, opts)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return fmt.Errorf("there is no file %s: name files of a data directory, such as orders-0/00000000000000000000.log", name)
		case err != nil:
			return fmt.Errorf("dump %s: %w", name, err)
		}
	}
	return nil
}
