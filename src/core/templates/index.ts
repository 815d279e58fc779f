export { generateValue } from './expression.ts';
export {
  MAX_OBJECTS,
  type ProcessedTemplate,
  processTemplate,
  type TemplateBody,
  type TemplateParameter,
  validateParameters,
} from './process.ts';
