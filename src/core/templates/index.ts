export { type ProcessedTemplate, processTemplate, type TemplateBody } from './process.ts';
