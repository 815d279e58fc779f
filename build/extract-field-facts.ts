/**
 * Extracts facts of Kubernetes' OpenAPI document that the classes of `@kubernetes/client-node` lack: which strings are
 * quantities, and the documentation of fields that refer to other types. Writes `build/field-facts.json`. Run it for a
 * newer Kubernetes release:
 *
 *   node build/extract-field-facts.ts SWAGGER_JSON
 *
 * The argument is `api/openapi-spec/swagger.json` of the release's sources (1.36.3 was used).
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

interface Property {
  readonly $ref?: string;
  readonly description?: string;
  readonly items?: Property;
  readonly additionalProperties?: Property;
}

interface Document {
  readonly definitions: Readonly<Record<string, { readonly properties?: Readonly<Record<string, Property>> }>>;
}

const QUANTITY = '#/definitions/io.k8s.apimachinery.pkg.api.resource.Quantity';

const [file] = process.argv.slice(2);
if (file === undefined) throw new Error('usage: extract-field-facts.ts SWAGGER_JSON');
const { definitions } = JSON.parse(readFileSync(file, 'utf8')) as Document;

const isQuantity = (property: Property): boolean =>
  property.$ref === QUANTITY ||
  [property.items, property.additionalProperties].some((inner) => inner !== undefined && isQuantity(inner));

const quantities: string[] = [];
const descriptions: Record<string, Record<string, string>> = {};
for (const [type, { properties = {} }] of Object.entries(definitions).sort(([a], [b]) => (a < b ? -1 : 1))) {
  const texts: Record<string, string> = {};
  for (const [field, property] of Object.entries(properties)) {
    if (isQuantity(property)) quantities.push(`${type}.${field}`);
    if (property.$ref !== undefined && property.description !== undefined) texts[field] = property.description;
  }
  if (Object.keys(texts).length > 0) descriptions[type] = texts;
}
writeFileSync(
  fileURLToPath(new URL('./field-facts.json', import.meta.url)),
  `${JSON.stringify({ quantities, descriptions }, undefined, 2)}\n`,
);
