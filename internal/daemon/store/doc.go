// Package store stores the offload manager's state in a bbolt database. It is a
// managerd.Store for the process's next life.
//
// The file has two buckets:
//
//	store     version: the schema's version; digest: of the bucket records
//	records   kind (1 byte), group (4 bytes, big-endian): a record in JSON
//
// Every value is sealed: eight hexadecimal digits, the CRC-32C of key and text,
// and a space stand before the text. The digest counts the records and
// combines their checksums, so that what Load returns is what was saved, or an
// error: damage shows, wherever in the file it is. A store that has lost its
// last records without a word would be worse than none, because epochs would
// be given out twice.
//
// bbolt trusts its pages, and a page that is wrong can make it crash, or run
// forever. Open therefore walks all pages itself (pages.go) before bbolt sees
// them, under the same lock, which one process can have.
package store
