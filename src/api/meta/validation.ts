/**
 * Validation of `metadata` of objects and templates. Source: k8s.io/apimachinery/pkg/api/validation (ObjectMeta),
 * pkg/apis/meta/v1/validation (labels).
 */
import { addressNameErrors } from '../../base/addresses/addresses.ts';
import {
  dns1035LabelErrors,
  dns1123LabelErrors,
  dns1123SubdomainErrors,
  labelValueErrors,
  pathSegmentErrors,
  qualifiedNameErrors,
} from '../../base/names.ts';
import type { KindDefinition } from '../registry/definition.ts';
import { semanticEqual } from './equality.ts';
import { type FieldError, fieldError } from './field-error.ts';
import type { KubeObject, ObjectMeta } from './object.ts';

/** Maximum total size of the keys and values of an object's annotations. */
export const MAX_ANNOTATION_BYTES = 256 * 1024;

export const IMMUTABLE_MESSAGE = 'field is immutable';

const NAME_RULES = {
  dns1123Subdomain: dns1123SubdomainErrors,
  dns1123Label: dns1123LabelErrors,
  dns1035Label: dns1035LabelErrors,
  pathSegment: pathSegmentErrors,
  ipAddress: addressNameErrors,
} as const;

/** Errors of a name under the kind's name rule. `prefix`: the name is a generateName and may end in `-`. */
export function nameErrors(rule: KindDefinition['nameRule'], name: string, prefix = false): string[] {
  // The beginning of an address cannot be validated before the rest is appended.
  if (prefix && rule === 'ipAddress') return [];
  const subject = prefix && name.length > 1 && name.endsWith('-') ? `${name.slice(0, -1)}a` : name;
  return NAME_RULES[rule ?? 'dns1123Subdomain'](subject);
}

/** Validates the metadata of a new object. */
export function validateObjectMeta(
  metadata: ObjectMeta | undefined,
  kind: Pick<KindDefinition, 'namespaced' | 'nameRule' | 'custom' | 'anyFinalizers'>,
  path = 'metadata',
): FieldError[] {
  const errors: FieldError[] = [];
  const meta = metadata ?? {};
  if (isSet(meta.generateName)) {
    for (const message of nameErrors(kind.nameRule, meta.generateName, true)) {
      errors.push(fieldError.invalid(`${path}.generateName`, meta.generateName, message));
    }
  }
  if (!isSet(meta.name)) errors.push(fieldError.required(`${path}.name`, 'name or generateName is required'));
  else {
    for (const message of nameErrors(kind.nameRule, meta.name)) {
      errors.push(fieldError.invalid(`${path}.name`, meta.name, message));
    }
  }
  if (kind.namespaced) {
    if (!isSet(meta.namespace)) errors.push(fieldError.required(`${path}.namespace`));
    else {
      for (const message of dns1123LabelErrors(meta.namespace)) {
        errors.push(fieldError.invalid(`${path}.namespace`, meta.namespace, message));
      }
    }
  } else if (isSet(meta.namespace)) {
    errors.push(fieldError.forbidden(`${path}.namespace`, 'not allowed on this type'));
  }
  errors.push(...validateMetaContent(meta, path, hasAnyFinalizers(kind)));
  return errors;
}

const hasAnyFinalizers = ({ custom, anyFinalizers }: Pick<KindDefinition, 'custom' | 'anyFinalizers'>): boolean =>
  custom !== undefined || anyFinalizers === true;

/** Validates the metadata of an update, including immutable fields. */
export function validateObjectMetaUpdate(
  object: KubeObject,
  old: KubeObject,
  kind: Pick<KindDefinition, 'custom' | 'nameRule' | 'anyFinalizers'> = {},
  path = 'metadata',
): FieldError[] {
  const now = object.metadata ?? {};
  const before = old.metadata ?? {};
  const errors = validateMetaContent(now, path, hasAnyFinalizers(kind));
  if (isSet(now.generateName) && now.generateName !== before.generateName) {
    for (const message of nameErrors(kind.nameRule, now.generateName, true)) {
      errors.push(fieldError.invalid(`${path}.generateName`, now.generateName, message));
    }
  }
  if ((now.generation ?? 0) < (before.generation ?? 0)) {
    errors.push(fieldError.invalid(`${path}.generation`, now.generation ?? 0, 'must not be decremented'));
  }
  for (const field of [
    'name',
    'namespace',
    'uid',
    'creationTimestamp',
    'deletionTimestamp',
    'deletionGracePeriodSeconds',
  ] as const) {
    if (!semanticEqual(now[field], before[field])) {
      errors.push(fieldError.invalid(`${path}.${field}`, now[field], IMMUTABLE_MESSAGE));
    }
  }
  if (before.deletionTimestamp !== undefined) {
    // During deletion, finalizers cannot be added, because they could prevent the deletion indefinitely.
    const added = (now.finalizers ?? []).filter((each) => before.finalizers?.includes(each) !== true);
    if (added.length > 0) {
      errors.push(
        fieldError.forbidden(
          `${path}.finalizers`,
          `no new finalizers can be added if the object is being deleted, found new finalizers []string{${added
            .sort()
            .map((each) => JSON.stringify(each))
            .join(', ')}}`,
        ),
      );
    }
  }
  return errors;
}

function validateMetaContent(meta: ObjectMeta, path: string, custom: boolean): FieldError[] {
  const errors: FieldError[] = [];
  if ((meta.generation ?? 0) < 0) {
    errors.push(fieldError.invalid(`${path}.generation`, meta.generation, 'must be greater than or equal to 0'));
  }
  errors.push(...validateLabels(meta.labels, `${path}.labels`));
  errors.push(...validateAnnotations(meta.annotations, `${path}.annotations`));
  errors.push(...validateOwnerReferences(meta.ownerReferences, `${path}.ownerReferences`));
  errors.push(...validateFinalizers(meta.finalizers, `${path}.finalizers`, custom));
  return errors;
}

export function validateLabels(labels: Readonly<Record<string, string>> | undefined, path: string): FieldError[] {
  const errors: FieldError[] = [];
  const all = labels ?? {};
  for (const key of Object.keys(all)) {
    const value = all[key] ?? '';
    for (const message of qualifiedNameErrors(key)) errors.push(fieldError.invalid(path, key, message));
    for (const message of labelValueErrors(value)) errors.push(fieldError.invalid(path, value, message));
  }
  return errors;
}

export function validateAnnotations(
  annotations: Readonly<Record<string, string>> | undefined,
  path: string,
): FieldError[] {
  const errors: FieldError[] = [];
  let bytes = 0;
  const all = annotations ?? {};
  for (const key of Object.keys(all)) {
    const value = all[key] ?? '';
    for (const message of qualifiedNameErrors(key.toLowerCase())) errors.push(fieldError.invalid(path, key, message));
    bytes += utf8Length(key) + utf8Length(value);
  }
  if (bytes > MAX_ANNOTATION_BYTES) errors.push(fieldError.tooLong(path, MAX_ANNOTATION_BYTES));
  return errors;
}

function validateOwnerReferences(references: ObjectMeta['ownerReferences'], path: string): FieldError[] {
  const errors: FieldError[] = [];
  let controller: string | undefined;
  let contested = false;
  for (const reference of references ?? []) {
    if (!isSet(reference.apiVersion) || !/^(?:[^/]+\/)?[^/]+$/.test(reference.apiVersion)) {
      errors.push(fieldError.invalid(`${path}.apiVersion`, reference.apiVersion ?? '', 'version must not be empty'));
    }
    if (!isSet(reference.kind)) errors.push(fieldError.invalid(`${path}.kind`, '', 'must not be empty'));
    if (!isSet(reference.name)) errors.push(fieldError.invalid(`${path}.name`, '', 'must not be empty'));
    if (!isSet(reference.uid)) errors.push(fieldError.invalid(`${path}.uid`, '', 'must not be empty'));
    if (reference.apiVersion === 'v1' && reference.kind === 'Event') {
      errors.push(fieldError.invalid(path, reference, '/v1, Kind=Event is disallowed from being an owner'));
    }
    if (reference.controller === true) {
      const name = `${reference.kind}/${reference.name}`;
      if (controller !== undefined) {
        if (contested) continue;
        contested = true;
        errors.push(
          fieldError.invalid(
            path,
            references,
            `Only one reference can have Controller set to true. Found "true" in references for ${controller} and ${name}`,
          ),
        );
      } else controller = name;
    }
  }
  return errors;
}

const STANDARD_FINALIZERS = new Set([
  'kubernetes',
  'orphan',
  'foregroundDeletion',
  'customresourcecleanup.apiextensions.k8s.io',
  'machine.machine.openshift.io',
  'baremetalhost.metal3.io',
]);

/**
 * Warnings about finalizers without a domain that a write adds to a custom resource. Source:
 * k8s.io/apiextensions-apiserver's validateKubeFinalizerName.
 */
export function finalizerWarnings(
  object: KubeObject,
  old: KubeObject | undefined,
  path = 'metadata.finalizers',
): string[] {
  const before = new Set(old?.metadata?.finalizers);
  const added = new Set((object.metadata?.finalizers ?? []).filter((finalizer) => !before.has(finalizer)));
  return [...added].sort().flatMap((finalizer) => {
    const messages = qualifiedNameErrors(finalizer);
    if (!finalizer.includes('/') && !STANDARD_FINALIZERS.has(finalizer)) {
      const how = finalizer.includes('.') ? ' including a path (/)' : '';
      messages.push(
        `prefer a domain-qualified finalizer name${how} to avoid accidental conflicts with other finalizer writers`,
      );
    }
    return messages.map((message) => `${path}: ${JSON.stringify(finalizer)}: ${message}`);
  });
}

function validateFinalizers(finalizers: readonly string[] | undefined, path: string, custom: boolean): FieldError[] {
  const errors: FieldError[] = [];
  for (const [index, finalizer] of (finalizers ?? []).entries()) {
    for (const message of qualifiedNameErrors(finalizer)) errors.push(fieldError.invalid(path, finalizer, message));
    if (!custom && !finalizer.includes('/') && !STANDARD_FINALIZERS.has(finalizer)) {
      errors.push(
        fieldError.invalid(
          `${path}[${index}]`,
          finalizer,
          'name is neither a standard finalizer name nor is it fully qualified',
        ),
      );
    }
  }
  const names = new Set(finalizers);
  if (names.has('orphan') && names.has('foregroundDeletion')) {
    errors.push(fieldError.invalid(path, finalizers, 'finalizer orphan and foregroundDeletion cannot be both set'));
  }
  return errors;
}

/** Reports an error if the value differs from the old one. */
export function validateImmutable(value: unknown, old: unknown, path: string): FieldError[] {
  return semanticEqual(value, old) ? [] : [fieldError.invalid(path, value, IMMUTABLE_MESSAGE)];
}

/**
 * Whether the text is present and not empty. Go does not distinguish absent from empty texts, so neither does
 * validation.
 */
export function isSet(value: string | undefined | null): value is string {
  return value !== undefined && value !== null && value !== '';
}

/** Length of the text in UTF-8 bytes. */
export function utf8Length(text: string): number {
  let bytes = 0;
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index);
    if (code < 0x80) bytes += 1;
    else if (code < 0x800) bytes += 2;
    else if (code >= 0xd800 && code <= 0xdbff) {
      bytes += 4;
      index++;
    } else bytes += 3;
  }
  return bytes;
}
