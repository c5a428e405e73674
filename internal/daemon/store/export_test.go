package store

// Seal is seal, for values that are not what they should be.
var Seal = seal

// Encode is encode.
var Encode = encode
