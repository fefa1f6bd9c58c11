package cli

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/tidemark-log/tidemark/internal/explain"
)

// maxAnswerBytes bounds what a broker may tell of its replicas.
const maxAnswerBytes = 64 << 20

// errNotTidemark is what a broker of another make does with our request.
var errNotTidemark = errors.New("it closed the connection, as a broker that is not Tidemark does")

// askReplicas asks the broker at address for what it knows of its replicas.
func askReplicas(ctx context.Context, address string, topics []string) (*explain.Replicas, error) {
	body, err := explain.Encode(explain.ReplicasRequest{Topics: topics})
	if err != nil {
		return nil, err
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, errors.New(reason(err))
	}
	defer conn.Close()
	if deadline, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(deadline); err != nil {
			return nil, fmt.Errorf("set the deadline: %w", err)
		}
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if _, err := conn.Write(request(body)); err != nil {
		return nil, errors.New(reason(err))
	}
	answer, err := readAnswer(conn)
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return nil, errNotTidemark
	case err != nil:
		return nil, errors.New(reason(err))
	}
	var out explain.Replicas
	if err := explain.Decode(answer, &out); err != nil {
		return nil, err
	}
	if out.Error != "" {
		return nil, errors.New(out.Error)
	}
	return &out, nil
}

// correlation marks our one request of a connection.
const correlation = 1

// request frames a body: size, api key, version 0, correlation id and no client
// id, which is Kafka's request header v1.
func request(body []byte) []byte {
	const header = 2 + 2 + 4 + 2
	out := make([]byte, 0, 4+header+len(body))
	out = binary.BigEndian.AppendUint32(out, uint32(header+len(body)))
	out = binary.BigEndian.AppendUint16(out, explain.APIKey)
	out = binary.BigEndian.AppendUint16(out, 0)
	out = binary.BigEndian.AppendUint32(out, correlation)
	out = binary.BigEndian.AppendUint16(out, 0xffff)
	return append(out, body...)
}

// readAnswer reads one framed answer and returns what follows its header v0.
func readAnswer(r io.Reader) ([]byte, error) {
	var head [8]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	size := binary.BigEndian.Uint32(head[:4])
	if id := binary.BigEndian.Uint32(head[4:]); size < 4 || size > maxAnswerBytes || id != correlation {
		return nil, fmt.Errorf("an answer of %d bytes to request %d makes no sense", size, id)
	}
	body := make([]byte, size-4)
	_, err := io.ReadFull(r, body)
	return body, err
}
