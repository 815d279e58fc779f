/** A kind that uses every feature of a definition, and one that uses none. */
import { type Fields, GROUP } from './definitions.ts';

const text = { type: 'string' };
const int = { type: 'integer' };
const object = (properties: Fields, rest: Fields = {}): Fields => ({ type: 'object', properties, ...rest });

const spec = object(
  {
    replicas: { type: 'integer', format: 'int32', minimum: 0, default: 1 },
    color: { type: 'string', enum: ['red', 'green', 'blue'] },
    size: { type: 'number' },
    flag: { type: 'boolean' },
    when: { type: 'string', format: 'date-time' },
    fixed: { type: 'string', 'x-kubernetes-validations': [{ rule: 'self == oldSelf', message: 'fixed is fixed' }] },
    either: { 'x-kubernetes-int-or-string': true },
    any: { 'x-kubernetes-preserve-unknown-fields': true },
    nested: object({ a: text, deeper: object({ b: int, c: { type: 'string', default: 'c' } }) }),
    atomicObject: object({ a: text, b: text }, { 'x-kubernetes-map-type': 'atomic' }),
    map: { type: 'object', additionalProperties: text },
    atomicMap: { type: 'object', additionalProperties: text, 'x-kubernetes-map-type': 'atomic' },
    mapOfObjects: { type: 'object', additionalProperties: object({ a: text, b: int }) },
    atomic: { type: 'array', items: text },
    set: { type: 'array', items: text, 'x-kubernetes-list-type': 'set' },
    ints: { type: 'array', items: int, 'x-kubernetes-list-type': 'set' },
    ports: {
      type: 'array',
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['port', 'protocol'],
      items: object(
        {
          port: int,
          protocol: { type: 'string', default: 'TCP' },
          name: text,
          options: { type: 'array', items: text },
        },
        { required: ['port'] },
      ),
    },
    items: {
      type: 'array',
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['name'],
      items: object(
        { name: text, value: text, tags: { type: 'array', items: text, 'x-kubernetes-list-type': 'set' } },
        { required: ['name'] },
      ),
    },
    template: {
      type: 'object',
      'x-kubernetes-embedded-resource': true,
      'x-kubernetes-preserve-unknown-fields': true,
    },
  },
  {},
);

const status = object({
  replicas: int,
  selector: text,
  phase: text,
  conditions: {
    type: 'array',
    'x-kubernetes-list-type': 'map',
    'x-kubernetes-list-map-keys': ['type'],
    items: object({ type: text, status: text, at: { type: 'string', format: 'date-time' } }, { required: ['type'] }),
  },
});

const schema = {
  openAPIV3Schema: object({ spec, status }, { description: 'A Widget is asked about.' }),
};
/** A second schema, because selectable fields cannot differ between versions with the same schema. */
const olderSchema = { openAPIV3Schema: object({ spec, status }, { description: 'A Widget was asked about.' }) };

const COLUMNS: readonly Fields[] = [
  { name: 'Color', type: 'string', jsonPath: '.spec.color', description: 'its color' },
  { name: 'Replicas', type: 'integer', format: 'int32', jsonPath: '.spec.replicas' },
  { name: 'Size', type: 'number', jsonPath: '.spec.size' },
  { name: 'Flag', type: 'boolean', jsonPath: '.spec.flag' },
  { name: 'When', type: 'date', jsonPath: '.spec.when' },
  { name: 'Old', type: 'date', jsonPath: '.metadata.creationTimestamp', priority: 1 },
  { name: 'Names', type: 'string', jsonPath: '.spec.items[*].name', priority: 2 },
  { name: 'First', type: 'string', jsonPath: '.spec.items[0].name' },
  { name: 'Last', type: 'string', jsonPath: '.spec.items[-1:].value' },
  { name: 'Filtered', type: 'string', jsonPath: '.spec.items[?(@.name=="b")].value' },
  { name: 'Ready', type: 'string', jsonPath: '.status.conditions[?(@.type=="Ready")].status' },
  { name: 'List', type: 'string', jsonPath: '.spec.atomic' },
  { name: 'Map', type: 'string', jsonPath: '.spec.map' },
  { name: 'Label', type: 'string', jsonPath: '.metadata.labels.app\\.kubernetes\\.io/name' },
  { name: 'Whole', type: 'integer', jsonPath: '.spec.size' },
  { name: 'Colored', type: 'integer', jsonPath: '.spec.color' },
  { name: 'Counted', type: 'boolean', jsonPath: '.spec.replicas' },
  { name: 'Either', type: 'string', jsonPath: '.spec.either' },
  { name: 'Phase', type: 'string', format: 'byte', jsonPath: '.status.phase' },
];

const SELECTABLE: readonly Fields[] = [
  { jsonPath: '.spec.color' },
  { jsonPath: '.spec.replicas' },
  { jsonPath: '.spec.flag' },
];

const subresources = {
  status: {},
  scale: {
    specReplicasPath: '.spec.replicas',
    statusReplicasPath: '.status.replicas',
    labelSelectorPath: '.status.selector',
  },
};

const full = { schema, subresources, additionalPrinterColumns: COLUMNS, selectableFields: SELECTABLE };

export const WIDGETS: Fields = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: `widgets.${GROUP}` },
  spec: {
    group: GROUP,
    scope: 'Namespaced',
    names: {
      plural: 'widgets',
      singular: 'widget',
      kind: 'Widget',
      listKind: 'WidgetList',
      shortNames: ['wd', 'wdg'],
      categories: ['all', 'judged'],
    },
    versions: [
      { name: 'v1', served: true, storage: true, ...full },
      { name: 'v1beta1', served: true, storage: false, deprecated: true, deprecationWarning: 'use "v1"', ...full },
      { name: 'v1alpha1', served: true, storage: false, deprecated: true, schema: olderSchema },
      { name: 'v0', served: false, storage: false, schema },
    ],
  },
};

/** Cluster-scoped, without subresources and declared fields. */
export const GADGETS: Fields = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: `gadgets.${GROUP}` },
  spec: {
    group: GROUP,
    scope: 'Cluster',
    names: { plural: 'gadgets', kind: 'Gadget' },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        schema: { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
      },
    ],
  },
};

export const widget = (name: string, fields: Fields = {}, metadata: Fields = {}, rest: Fields = {}): Fields => ({
  apiVersion: `${GROUP}/v1`,
  kind: 'Widget',
  metadata: { name, ...metadata },
  spec: fields,
  ...rest,
});
