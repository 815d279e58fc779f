/** Message descriptions of the API, parsed from the generated table on first use. */
import { MESSAGES as GENERATED } from './generated/messages.ts';
import { withNamed } from './named-messages.ts';

const MESSAGES = withNamed(GENERATED);

export const PROTOBUF = 'application/vnd.kubernetes.protobuf';

/** Prefix of every protobuf body. */
export const MAGIC = Buffer.from('k8s\0');

export interface Field {
  readonly number: number;
  readonly name: string;
  readonly code: string;
  readonly shape: 'single' | 'repeated' | 'map' | 'inline';
  readonly message: number;
  /** True if JSON omits the zero value of the field: it is no pointer in Go and has `omitempty`. */
  readonly omitZero: boolean;
}

/** Fields by number, in ascending order. */
type Message = ReadonlyMap<number, Field>;

const names = Object.keys(MESSAGES);
const indexes = new Map(names.map((name, index) => [name, index]));
const compiled = new Map<number, Message>();

/** Index of a type in the table. Undefined for types without a protobuf form. */
export function indexOfMessage(typeName: string): number | undefined {
  return indexes.get(typeName);
}

export function nameOfMessage(index: number): string {
  return names[index] ?? 'the message';
}

export function messageAt(index: number): Message {
  let message = compiled.get(index);
  if (message === undefined) {
    const fields: Field[] = [];
    for (const row of (MESSAGES[names[index] ?? ''] ?? '').split(';')) {
      const [number, name, code] = row.split(' ');
      if (number !== undefined && name !== undefined && code !== undefined) {
        fields.push(fieldOf(Number(number), name, code));
      }
    }
    message = new Map(fields.sort((a, b) => a.number - b.number).map((field) => [field.number, field]));
    compiled.set(index, message);
  }
  return message;
}

const SHAPES: Readonly<Record<string, Field['shape']>> = { '*': 'repeated', '%': 'map', '>': 'inline' };

function fieldOf(number: number, name: string, text: string): Field {
  const shape = SHAPES[text.charAt(0)] ?? 'single';
  const rest = shape === 'single' ? text : text.slice(1);
  const code = shape === 'inline' ? 'm' : rest.charAt(0);
  const message = code === 'm' ? Number(shape === 'inline' ? rest : rest.slice(1)) : -1;
  return { number, name, code, shape, message, omitZero: rest.endsWith('!') };
}
