/**
 * Kind Template, and processing of templates. The API server returns the processed template and does not store it.
 * Source: openshift/openshift-apiserver pkg/template; columns of `oc get templates`.
 */
import type { FieldError } from '../../../../api/meta/field-error.ts';
import { fieldError } from '../../../../api/meta/field-error.ts';
import type { JsonObject, KubeObject } from '../../../../api/meta/object.ts';
import { column, nameColumn } from '../../../../api/printing/columns.ts';
import type { KindDefinition } from '../../../../api/registry/definition.ts';
import { ALL_VERBS } from '../../../../api/registry/strategies.ts';

export interface TemplateParameter {
  name?: string;
  displayName?: string;
  description?: string;
  value?: string;
  generate?: string;
  from?: string;
  required?: boolean;
}

export interface Template extends KubeObject {
  message?: string;
  objects?: JsonObject[];
  parameters?: TemplateParameter[];
  labels?: Record<string, string>;
}

const NAME = /^[a-zA-Z0-9_]+$/;
const MAX_DESCRIPTION = 80;

/** Validates the names of parameters. A template with errors that only occur during processing can be stored. */
export function validateParameters(parameters: readonly TemplateParameter[], at = 'parameters'): FieldError[] {
  const errors: FieldError[] = [];
  const names = new Set<string>();
  for (const [index, { name = '' }] of parameters.entries()) {
    const field = `${at}[${index}].name`;
    if (name === '') errors.push(fieldError.required(field));
    else if (!NAME.test(name)) errors.push(fieldError.invalid(field, name, `does not match ${NAME.source}`));
    else if (names.has(name)) errors.push(fieldError.duplicate(field, name));
    names.add(name);
  }
  return errors;
}

function parametersText({ parameters = [] }: Template): string {
  const blank = parameters.filter((each) => !each.value && !each.generate).length;
  const generated = parameters.filter((each) => !each.value && each.generate).length;
  if (blank > 0) return `${parameters.length} (${blank} blank)`;
  return generated > 0 ? `${parameters.length} (${generated} generated)` : `${parameters.length} (all set)`;
}

function descriptionText({ metadata }: Template): string {
  const [first = ''] = (metadata?.annotations?.['description'] ?? '').split('\n', 1);
  return first.length > MAX_DESCRIPTION ? `${first.slice(0, MAX_DESCRIPTION - 3)}...` : first;
}

const names = {
  group: 'template.openshift.io',
  version: 'v1',
  kind: 'Template',
  listKind: 'TemplateList',
  namespaced: true,
  schemaName: 'com.github.openshift.api.template.v1.Template',
} as const;

export const templates: KindDefinition<Template> = {
  ...names,
  plural: 'templates',
  singular: 'template',
  verbs: ALL_VERBS,
  returnsDeleted: 'undocumented',
  storagePrefix: 'openshift.io/templates',
  strategy: { validate: ({ parameters = [] }) => validateParameters(parameters) },
  columns: [
    nameColumn,
    column<Template>('Description', 'What the template is for.', descriptionText),
    column<Template>('Parameters', 'How many parameters there are.', parametersText),
    column<Template>('Objects', 'How many objects it makes.', ({ objects = [] }) => objects.length, {
      type: 'integer',
    }),
  ],
};

/** Kind for processing. The response to a create is the template with its processed objects. */
export const processedTemplates: KindDefinition<Template> = {
  ...names,
  plural: 'processedtemplates',
  singular: 'processedtemplate',
  verbs: ['create'],
  isComputed: true,
  storagePrefix: '',
  strategy: {},
  columns: [],
};
