/** Validation of the hardware facts that a blank host reports about itself. All sizes are limited. */
import { type FieldError, fieldError } from '../../../../api/meta/field-error.ts';

const MAX_TEXT = 128;
/** Control and format characters, including bidirectional overrides, and Unicode line and paragraph separators. */
const UNPRINTABLE = /[\p{C}\p{Zl}\p{Zp}]/u;
const MAX_NICS = 32;
const MAX_DISKS = 64;
const MAX_NUMBER = 2 ** 53;

type Shape = 'text' | 'number' | { readonly [field: string]: Shape } | { readonly list: Shape; readonly most: number };

const TEXTS = (names: string): { readonly [field: string]: Shape } =>
  Object.fromEntries(names.split(' ').map((name) => [name, 'text' as const]));

const HARDWARE: Shape = {
  hostname: 'text',
  systemVendor: TEXTS('manufacturer productName serialNumber'),
  ramMebibytes: 'number',
  cpu: { ...TEXTS('arch model'), clockMegahertz: 'number', count: 'number' },
  nics: { list: { ...TEXTS('name model mac ip'), speedGbps: 'number' }, most: MAX_NICS },
  storage: { list: { ...TEXTS('name type model serialNumber'), sizeBytes: 'number' }, most: MAX_DISKS },
  firmware: { bios: TEXTS('date vendor version') },
};

/** Validates the types, sizes and ranges of all fields. Unknown fields are rejected. */
export function validateHardware(value: unknown, path: string): FieldError[] {
  return value === undefined ? [] : check(value, HARDWARE, path);
}

function check(value: unknown, shape: Shape, path: string): FieldError[] {
  if (shape === 'text') {
    const isPlain = typeof value === 'string' && value.length <= MAX_TEXT && !UNPRINTABLE.test(value);
    return isPlain ? [] : [fieldError.invalid(path, '', `must be a text of at most ${MAX_TEXT} printable characters`)];
  }
  if (shape === 'number') {
    const isCount = typeof value === 'number' && value >= 0 && value < MAX_NUMBER;
    return isCount ? [] : [fieldError.invalid(path, '', 'must be a number that is not negative')];
  }
  if (isList(shape)) {
    if (!Array.isArray(value)) return [fieldError.invalid(path, '', 'must be a list')];
    if (value.length > shape.most) return [fieldError.tooMany(path, value.length, shape.most)];
    return value.flatMap((each, index) => check(each, shape.list, `${path}[${index}]`));
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    return [fieldError.invalid(path, '', 'must be an object')];
  const errors: FieldError[] = [];
  for (const [field, each] of Object.entries(value)) {
    const inner = Object.hasOwn(shape, field) ? shape[field] : undefined;
    if (inner === undefined) return [fieldError.invalid(path, field.slice(0, MAX_TEXT), 'unknown field')];
    errors.push(...check(each, inner, `${path}.${field}`));
    if (errors.length > 8) break;
  }
  return errors;
}

function isList(shape: Exclude<Shape, string>): shape is { readonly list: Shape; readonly most: number } {
  return typeof shape['most'] === 'number';
}
