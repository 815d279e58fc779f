export { type ProcessedTemplate, processTemplate, type TemplateBody } from './process.ts';
export { nameRefusal, projectObjects } from './project.ts';
