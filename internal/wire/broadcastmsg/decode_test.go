package broadcastmsg

func decodeRequest(b []byte) (*Request, error) {
	r := new(Request)
	return r, r.Decode(b)
}

func decodeReply(b []byte) (*Reply, error) {
	r := new(Reply)
	return r, r.Decode(b)
}
