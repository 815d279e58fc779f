/**
 * Helpers for types that are declared by hand, with documentation: OpenShift's groups and this project's own, which no
 * npm package contains. Field names are those of openshift/api 4.10; type names are those of its published OpenAPI
 * documents, `com.github.openshift.api.GROUP.VERSION.KIND`.
 */
import type { Descriptions, GeneratedType } from '../types-format.ts';

/**
 * A field: its compact type (types-format.ts) and documentation. A leading `!` marks it as required. `#Name` refers to
 * a type of the same package, `#core.Name` to the core group, `#meta.Name` to apimachinery and `#config.Name` to
 * config.openshift.io/v1; see PACKAGES.
 */
export type DeclaredField = readonly [type: string, documentation: string];

export interface DeclaredType {
  readonly about: string;
  readonly fields: Readonly<Record<string, DeclaredField>>;
  /** A kind with apiVersion, kind, metadata, and a list type. */
  readonly isKind?: true;
  /** A kind without a list type, for requests and reviews. */
  readonly isRequest?: true;
}

export interface DeclaredPackage {
  readonly types: Record<string, GeneratedType>;
  readonly descriptions: Record<string, Descriptions[string]>;
}

const PACKAGES: Readonly<Record<string, string>> = {
  meta: 'io.k8s.apimachinery.pkg.apis.meta.v1',
  core: 'io.k8s.api.core.v1',
  apps: 'io.k8s.api.apps.v1',
  rbac: 'io.k8s.api.rbac.v1',
  admissionregistration: 'io.k8s.api.admissionregistration.v1',
  config: 'com.github.openshift.api.config.v1',
};
const API_VERSION = 'APIVersion defines the versioned schema of this representation of an object.';
const KIND = 'Kind is the type of the object.';

/** Types and documentation of one package below `root`: `declarePackage('route.v1', {…})`. */
export function declarePackage(
  name: string,
  declared: Readonly<Record<string, DeclaredType>>,
  root = 'com.github.openshift.api',
): DeclaredPackage {
  const prefix = `${root}.${name}`;
  const types: Record<string, GeneratedType> = {};
  const descriptions: Record<string, Descriptions[string]> = {};
  const add = (typeName: string, about: string, fields: Readonly<Record<string, DeclaredField>>): void => {
    const full = `${prefix}.${typeName}`;
    const entries = Object.entries(fields);
    const required = entries.filter(([, [type]]) => type.startsWith('!')).map(([field]) => field);
    types[full] = {
      ...(required.length === 0 ? {} : { r: required }),
      f: Object.fromEntries(entries.map(([field, [type]]) => [field, fullType(prefix, type)])),
    };
    descriptions[full] = {
      d: about,
      f: Object.fromEntries(entries.map(([field, [, documentation]]) => [field, documentation])),
    };
  };
  for (const [typeName, { about, fields, isKind, isRequest }] of Object.entries(declared)) {
    if (isKind !== true && isRequest !== true) {
      add(typeName, about, fields);
      continue;
    }
    add(typeName, about, {
      apiVersion: ['string', API_VERSION],
      kind: ['string', KIND],
      metadata: ['#meta.ObjectMeta', 'Standard object metadata.'],
      ...fields,
    });
    if (isRequest === true) continue;
    add(`${typeName}List`, `${typeName}List is a list of ${typeName} objects.`, {
      apiVersion: ['string', API_VERSION],
      kind: ['string', KIND],
      metadata: ['#meta.ListMeta', 'Standard list metadata.'],
      items: [`![]#${typeName}`, 'Items of the list.'],
    });
  }
  return { types, descriptions };
}

function fullType(prefix: string, type: string): string {
  return type
    .replace(/^!/, '')
    .replace(
      /#(?:(\w+)\.)?(\w+)$/,
      (_, from: string | undefined, name: string) =>
        `#${from === undefined ? prefix : (PACKAGES[from] ?? from)}.${name}`,
    );
}
