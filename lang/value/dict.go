package value

// Dict maps strings to values and keeps the order of insertion. It is immutable once published.
type Dict struct {
	keys  []string
	index map[string]int
	vals  []Value
}

// NewDict returns an empty dictionary with room for n entries.
func NewDict(n int) *Dict {
	return &Dict{keys: make([]string, 0, n), vals: make([]Value, 0, n)}
}

// dictIndexFrom is the size from which a dictionary keeps an index; below it a linear scan is faster.
const dictIndexFrom = 9

// Len is the number of entries.
func (d *Dict) Len() int { return len(d.keys) }

// Keys lists the keys in insertion order. The caller must not change the slice.
func (d *Dict) Keys() []string { return d.keys }

// At returns the i-th entry in insertion order.
func (d *Dict) At(i int) (string, Value) { return d.keys[i], d.vals[i] }

// Get returns the value of key.
func (d *Dict) Get(key string) (Value, bool) {
	if i := d.find(key); i >= 0 {
		return d.vals[i], true
	}
	return nil, false
}

// Set adds or replaces the value of key. A replaced key keeps its place.
func (d *Dict) Set(key string, v Value) {
	if i := d.find(key); i >= 0 {
		d.vals[i] = v
		return
	}
	d.keys = append(d.keys, key)
	d.vals = append(d.vals, v)
	switch {
	case d.index != nil:
		d.index[key] = len(d.keys) - 1
	case len(d.keys) >= dictIndexFrom:
		d.index = make(map[string]int, 2*len(d.keys))
		for i, k := range d.keys {
			d.index[k] = i
		}
	}
}

func (d *Dict) find(key string) int {
	if d.index != nil {
		if i, ok := d.index[key]; ok {
			return i
		}
		return -1
	}
	for i, k := range d.keys {
		if k == key {
			return i
		}
	}
	return -1
}
