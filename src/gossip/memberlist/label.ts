import { CodedError } from '../../base/errors.ts';
import { messageType } from './messages.ts';

/** Maximum length of a label in bytes. Source: memberlist's `LabelMaxSize`. */
const MAX_LABEL_BYTES = 255;

/**
 * Bytes of a ring's label; empty if the ring has none. Rings with different labels on the same network ignore each
 * other.
 */
export function labelBytes(label: string): Uint8Array {
  const bytes = Buffer.from(label, 'utf8');
  if (bytes.length > MAX_LABEL_BYTES)
    throw new CodedError('label-too-long', `a ring label has at most ${MAX_LABEL_BYTES} bytes, not ${bytes.length}`);
  return bytes;
}

/** Header of everything sent in a labelled ring: type byte, length, label. */
export function labelHeader(label: Uint8Array): Uint8Array {
  return label.length === 0
    ? new Uint8Array()
    : Buffer.concat([Buffer.from([messageType.hasLabel, label.length]), label]);
}

/**
 * Removes the label header. Returns `incomplete` if more bytes are needed, and `foreign` if the label is missing or
 * that of another ring.
 */
export function withoutLabel(bytes: Uint8Array, label: Uint8Array): Uint8Array | 'incomplete' | 'foreign' {
  if (bytes.length === 0) return 'incomplete';
  if (bytes[0] !== messageType.hasLabel) return label.length === 0 ? bytes : 'foreign';
  const length = bytes[1];
  if (length === undefined) return 'incomplete';
  // A header with an empty label is malformed, because a ring without label sends no header.
  if (length === 0 || length !== label.length) return 'foreign';
  if (bytes.length < 2 + length) return 'incomplete';
  return Buffer.compare(bytes.subarray(2, 2 + length), label) === 0 ? bytes.subarray(2 + length) : 'foreign';
}
