export { type ProcessedTemplate, processTemplate, type TemplateBody, templateSteps } from './process.ts';
export { nameRefusal, projectObjects } from './project.ts';
